import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/misc'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
db=d+'/x.svcdb'
def load(s,a,b,val):
    return s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/d/f{i}.json','content':json.dumps({'t':f'{val} w{i}','n':i}),'content_type':'application/json'} for i in range(a,b)]})[0]
C={'aggregate':{'count':True}}
def probe(s,label,want):
    for _ in range(30):
        r0=s.query("/",[],limit=1)
        if r0[0]==200 and "meta" not in r0[1]: break
        time.sleep(.5)
    got={v:s.query('/d',{'field':'t','op':'search','value':v},**C) for v in ('one','two','three')}
    tot=s.query('/',{'field':'@path','op':'prefix','value':'/d/'},**C)
    g={v:(r[1].get('count') if r[0]==200 else r) for v,r in got.items()}; g['all']=tot[1].get('count') if tot[0]==200 else tot
    print(label,'OK' if g==want else 'WRONG',g,want)
    return g==want
s=S(db)
s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext']},{'name':'n','type':'exact'},{'name':'@path','type':'exact'}]})
load(s,0,5000,'one'); load(s,5000,6000,'two'); W1={'one':5000,'two':1000,'three':0,'all':6000}
probe(s,'base',W1); time.sleep(3); s.stop()
subprocess.run(['cp','-a',db+'.d',d+'/old.d']); shutil.copy(db,d+'/old')
s.start(); load(s,4000,5500,'three'); s.q('DELETE','/files/d/f1.json'); W2={'one':3999,'two':500,'three':1500,'all':5999}
probe(s,'later',W2); time.sleep(2); s.stop(); subprocess.run(['cp','-a',db+'.d',d+'/new.d']); shutil.copy(db,d+'/new')
def setup(log,state):
    shutil.rmtree(db+'.d',ignore_errors=True); shutil.copy(d+'/'+log,db)
    if state: subprocess.run(['cp','-a',d+'/'+state,db+'.d'])
def run(label,want,after=None):
    try: s.start()
    except SystemExit as e: print(label,'NOSTART',e); return
    ok=probe(s,label,want)
    if not ok:
        time.sleep(8); probe(s,label+' +8s',want)
    if after: after()
    s.stop()
setup('new','old.d'); run('new log, old state',W2)
setup('old','new.d'); run('old log, new state',W1)
def write_then():
    load(s,0,10,'two'); probe(s,'  + write',{'one':4990,'two':1010,'three':0,'all':6000})
setup('old','new.d'); run('old log, new state, write',W1,write_then)
# old log with new views only, others removed (as test_replaced_log)
setup('old','new.d')
for n in ('index','head','tail'):
    p=db+'.d/'+n; shutil.rmtree(p,ignore_errors=True) if os.path.isdir(p) else (os.path.exists(p) and os.unlink(p))
run('old log, new views only',W1,write_then)
# old log diverges with exactly as many commits, then new views put back
setup('old','old.d'); s.start(); load(s,4000,5500,'two'); s.q('DELETE','/files/d/f2.json'); W3={'one':3999,'two':2000,'three':0,'all':5999}; probe(s,'diverged',W3); s.stop(); shutil.copy(db,d+'/div')
subprocess.run(['cp','-a',db+'.d',d+'/div.d'])
shutil.rmtree(db+'.d/views'); subprocess.run(['cp','-a',d+'/new.d/views',db+'.d/views']); run('diverged log, views of other branch',W3)
setup('div','new.d'); run('diverged log, whole state of other branch',W3)
# only files dir / only data.mdb older
def q(x): 
    v=d+'/'+x+'/views'; return v+'/'+[n for n in os.listdir(v) if 'query' in n][0]
setup('new','new.d'); qq=q('x.svcdb.d'); shutil.copy(q('old.d')+'/data.mdb',qq+'/data.mdb'); run('older data.mdb, new files',W2)
setup('new','new.d'); shutil.rmtree(qq+'/files'); subprocess.run(['cp','-a',q('old.d')+'/files',qq+'/files']); run('older files, new data.mdb',W2)
setup('new','new.d'); shutil.rmtree(qq+'/files'); run('no files',W2)
setup('new','new.d'); os.unlink(qq+'/data.mdb'); run('no data.mdb',W2)
setup('new','new.d'); shutil.rmtree(qq); subprocess.run(['cp','-a',q('old.d'),qq]); run('older query view',W2)
setup('new','new.d'); shutil.rmtree(qq); subprocess.run(['cp','-a',q('div.d'),qq]); run('query view of other branch',W3 if 0 else W2)
# CLI
setup('new',None)
c=cli('query','-D',db,'/d','t search "three"','--limit','2','--json'); print('cli no state',c.returncode,c.stdout[:150],c.stderr[-300:])
s.start()
for i in range(5):
    load(s,i,i+1,'three'); c=cli('query','-D',db,'/d','t search "three" and n < 10','--json'); 
    h=s.allpaths('/d',{'and':[{'field':'t','op':'search','value':'three'},{'field':'n','op':'lt','value':10}]})
    try: cp=[json.loads(l)['path'] for l in c.stdout.splitlines()] if c.stdout.startswith('{"path"') else [x['path'] for x in json.loads(c.stdout)['results']]
    except Exception as e: cp=(c.stdout[:200],c.stderr[:200])
    print('cli while server', sorted(cp)==sorted(h), c.returncode, (cp,h) if cp!=h else '')
# two servers
p2=subprocess.run(['timeout','15',SVC,'start','-D',db,'--auth','disabled','--port',str(freeport())],capture_output=True,text=True); print('second server',p2.returncode,p2.stdout[-200:],p2.stderr[-300:])
# plugins
for pid in ('index.trigram','index.fulltext','parsers','query'):
    c=cli('plugins','disable',pid,'-D',s.base); print('disable',pid,c.returncode,c.stdout[-100:],c.stderr[-200:]); time.sleep(1)
    r=s.query('/d',{'field':'t','op':'contains','value':'three'},**C); print('  q',r[0],str(r[1])[:200]); s.put('/d/while.json',{'t':'three while '+pid,'n':99999}); s.put('/d/sub/w-%s.json'%pid,{'t':'three while '+pid,'n':99999})
    r=s.query('/d',{'field':'n','op':'eq','value':99999},**C); print('  n',r[0],str(r[1])[:200])
    c=cli('plugins','enable',pid,'-D',s.base); print('enable',pid,c.returncode,c.stdout[-100:],c.stderr[-200:]); 
    t=time.time()
    for _ in range(20):
        r=s.query('/d',{'field':'t','op':'contains','value':'while '+pid},**C); r2=s.query('/d',{'field':'n','op':'eq','value':99999},**C); r3=s.query('/d',{'field':'t','op':'search','value':'three'},**C)
        if r[0]==200 and r[1]['count']==2: break
        time.sleep(.5)
    print('  back',round(time.time()-t,1),[ (x[0],str(x[1])[:150]) for x in (r,r2,r3)])
s.stop()
